import { NavLink } from "react-router";

import { Icon, type IconName } from "../parts/Icon";
import type { Permission } from "../api/types";
import { useMay } from "./session";

type Place = { to: string; icon: IconName; name: string; needs?: Permission };

const places: { group: string; places: Place[] }[] = [
  {
    group: "Work",
    places: [
      { to: "/", icon: "overview", name: "Overview" },
      { to: "/jobs", icon: "jobs", name: "Jobs" },
      { to: "/schedules", icon: "schedules", name: "Schedules" },
      { to: "/submit", icon: "submit", name: "Submit", needs: "submit" },
    ],
  },
  {
    group: "Machinery",
    places: [
      { to: "/queues", icon: "queues", name: "Queues" },
      { to: "/workers", icon: "workers", name: "Workers" },
      { to: "/targets", icon: "targets", name: "Targets", needs: "manage_targets" },
      { to: "/secrets", icon: "secrets", name: "Secrets", needs: "manage_targets" },
      { to: "/alerts", icon: "alerts", name: "Alerts", needs: "administer" },
    ],
  },
  {
    group: "Administration",
    places: [
      { to: "/access", icon: "access", name: "Users and tokens", needs: "administer" },
      { to: "/audit", icon: "audit", name: "Audit log", needs: "administer" },
    ],
  },
];

/** The page of an address, if not everybody may look at it; one that submits tells so itself. */
export const guarded = (path: string): Place | undefined => places.flatMap((group) => group.places).find(({ to, needs }) => to === path && needs && needs !== "submit");

export function Nav() {
  const may = useMay();
  return (
    <div style={{ paddingBottom: 12 }}>
      {places.map(({ group, places: inGroup }) => {
        const open = inGroup.filter(({ needs }) => !needs || may(needs));
        if (open.length === 0) return null;
        return (
          <div key={group}>
            <div className="nav-group">{group}</div>
            {open.map((place) => (
              <NavLink key={place.to} to={place.to} end={place.to === "/"} className={({ isActive }) => `nav-link${isActive ? " active" : ""}`}>
                <Icon name={place.icon} />
                {place.name}
              </NavLink>
            ))}
          </div>
        );
      })}
    </div>
  );
}
